"""SmolLM2 in transformers, without the processor and with it. `make engines` runs it; tests/test_hf.py has the rest."""

from pathlib import Path
from typing import Any

import pytest

from lzsampler import audit

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

PROMPTS = ["The history of tea", "Once upon a time", "My shopping list:\n- apples\n- bread\n-"]


def test_smollm2_loops_without_it_and_its_prose_does_not_with_it(smollm2_folder: Path) -> None:
    from lzsampler.integrations.hf import LZLogitsProcessor

    tokenizer = transformers.AutoTokenizer.from_pretrained(smollm2_folder, padding_side="left")
    model = transformers.AutoModelForCausalLM.from_pretrained(smollm2_folder)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    inputs = tokenizer(PROMPTS, return_tensors="pt", padding=True)

    def texts(*processors: object) -> Any:
        out = model.generate(**inputs, do_sample=False, max_new_tokens=200, logits_processor=list(processors))
        return tokenizer.batch_decode(out[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)

    without, with_lz = texts(), texts(LZLogitsProcessor(tokenizer=tokenizer))
    print("without:", *without, "with:", *with_lz, sep="\n---\n")
    assert sum(audit(text).looping for text in without) >= 2
    assert not any(audit(text).looping for text in with_lz[:2])  # the default spares lists of few words a line
