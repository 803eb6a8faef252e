"""`placed`: applies the penalties of a text on the CPU or in llama.cpp's graph."""

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import ArgumentError, LzsError
from ..llama.graph import GraphSampler, missing
from ..util.in_use import using
from .config import GenerationConfig
from .writing import Text


@contextmanager
def placed(text: Text, config: GenerationConfig) -> Iterator[None]:
    """Within a ``with`` block, run the sampler of a text where ``config.sampler`` says: on the CPU or in the graph.

    The block reserves the model, the grammar and the draft's model for this thread. LzsError if another thread uses one
    of them.

    "auto" is the graph if the logits are computed on a GPU and the graph is possible, else the CPU. Raises ValueError
    for "graph" with explanations, and LzsError if "graph" is not possible with llama.cpp or the device.
    """
    with using(text.model, text.grammar, None if config.draft is None else config.draft.model):
        graph = None if config.sampler == "cpu" else _graph(text, config)
        if graph is None:
            yield
            return
        with graph:
            text.use_graph(graph)
            yield


def _graph(text: Text, config: GenerationConfig) -> GraphSampler | None:
    model, own, asked = text.model, text.own, config.sampler == "graph"
    if own is None or not (asked or (model.on_device and missing() is None)):
        return None
    if text.on_explanation is not None:
        if asked:
            raise ArgumentError(
                "explanations need the model's logits, which sampler='graph' does not return: leave one of them out"
            )
        return None
    best = own.params.temperature == 0 and not config.loops.kind.steers
    try:
        if config.draft is not None:
            model.reserve_outputs(config.draft.most + 1)
        return GraphSampler(model, own, best=best, masked=text.grammar is not None)
    except LzsError:
        if asked or model.closed:
            raise
        return None
