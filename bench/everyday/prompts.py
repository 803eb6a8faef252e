"""The open prompts: 200 that ask for a long answer, and 24 for texts of thousands of tokens."""

from typing import Any

VERBS = [
    "Write a long, detailed essay about {}.",
    "Tell me a long story about {}.",
    "Explain {} step by step, in as much detail as you can.",
    "List 50 interesting facts about {}.",
]
FIRST = """
a lighthouse keeper|how rainbows form|the history of bread|a robot who learns to paint|why leaves change color
planning a week in Japan|the water cycle|a detective in Venice|the benefits of exercise|how a bicycle works
a dragon who is afraid of fire|learning to play the guitar|the life of a honeybee|how to make pancakes
the French Revolution|climate change|black holes|a letter to a friend about summer|the importance of sleep
a journey across the desert
"""
ESSAYS = """
the invention of printing|friendship|the value of patience|city parks|public libraries|the Roman roads|loneliness
the role of music in daily life|gardens|the ethics of zoos|handwriting|the age of sailing ships|school uniforms
the history of tea|working from home|the meaning of home|bridges|the fall of Carthage|small towns|honesty
tourism and its costs|the discovery of penicillin|winter|the art of conversation|railways in the nineteenth century
the beauty of mathematics|food waste|ambition|the silk trade|the night sky|village markets|the telephone
learning a second language|courage|the history of glass|maps|the future of farming|old age|team sports|forests
the printing of money|humor|rivers and civilization|the history of medicine|solitude
"""
STORIES = """
a baker who finds a map in a loaf|two sisters on an island|a clock that runs backwards|a fox and a blind owl
a girl who can talk to trains|the last librarian on Mars|an old sailor and a storm|a boy who collects shadows
a cat who becomes mayor|a village without a name|a thief with a good heart|the tailor of a giant
a mountain that moves at night|a lost letter|a knight who hates fighting|the smallest elephant
a painter who lost her colors|a snowman in the south|a locked garden|three brothers and a goat
a ferryman who never sleeps|an astronaut and her grandmother|a house with a hundred doors
a dog who waits at the station|a wizard who forgot his spells|a violin made of driftwood|a king who wanted to be poor
the night the lights went out|a race between two snails|a bottle found on the beach|a teacher on the moon
a ghost who is afraid of people|a mouse in a cathedral|the well at the end of the road|a chess player in exile
a farmer and a talking scarecrow|the twin who stayed behind|a bridge guarded by a goose|a spy who loved gardening
a doctor in a small village|the boy who sold the wind|an orchestra without a conductor|a whale in the harbor
a postman in the mountains|a forgotten birthday
"""
EXPLANATIONS = """
how bread rises|how a refrigerator works|how to plant a tree|how vaccines work|how an election is held|how to tie a tie
how planes fly|how to change a bicycle tire|how the heart pumps blood|how a bill becomes a law|how to brew coffee
how volcanoes erupt|how batteries store energy|how to write a letter of application|how bees make honey
how a piano makes sound|how to clean a kitchen|how the moon causes tides|how to build a bookshelf|how glass is made
how computers store numbers|how to learn to swim|how soap cleans|how a camera works|how to bake an apple pie
how plants make food|how a lock and key work|how to plan a birthday party|how rain forms|how a microwave oven heats food
how to wash a wool sweater|how paper is recycled|how a sailboat moves against the wind|how to start a vegetable garden
how memory works|how a bank lends money|how to paint a room|how an elevator works|how fossils form|how to make cheese
how a thermometer works|how to give a speech|how steel is made|how birds find their way|how to sharpen a knife
"""
LISTS = """
the ocean|Italy|cats|the human body|trees|the planet Saturn|chocolate|ancient Egypt|horses|the Alps|coffee|birds|Canada
the alphabet|rice|the sun|spiders|castles|the number seven|ships|snow|Africa|the brain|insects|gold|dinosaurs|clouds
wolves|the Olympic Games|salt|London|bicycles|the moon|potatoes|whales|deserts|India|books|apples|the ear|bridges
penguins|paper|mountains|fire
"""
CHAPTERS = [
    "Write the first chapter of a long novel about {}. Do not stop before it has at least 3,000 words.",
    "Write a complete handbook of at least 3,000 words on {}, with many sections.",
    "Write a very long conversation between two friends about {}. It goes on for hours.",
]
LONG = """
a family that keeps a hotel by the sea|growing vegetables at home|what they remember of their school
a mapmaker in a country without roads|repairing an old house|the best journey they ever made
the first winter of a new town|keeping bees|whether machines can think
a musician who returns to her village|cooking for a large family|how they would change their city
a ship that is lost in the ice|learning to draw|books that they have read
two brothers who share a farm|traveling by train|the meaning of a good life
a detective who grows old|running a small shop|their dreams and fears
a journey to another star|caring for a dog|the weather, food and work
"""


def topics(text: str) -> list[str]:
    """Return the topics of a block, which stand between bars and line ends."""
    return [topic for line in text.strip().splitlines() for topic in line.split("|")]


def long_answers() -> list[dict[str, Any]]:
    """Return the 200 prompts: those with even numbers are to search settings on, those with odd ones are held out.

    The first 20 take the verbs in turn, so that each half has two of the four; the next 20 make up for it, and from
    then on both halves take them in turn. Each half has every verb 25 times.
    """
    kinds = [iter(topics(block)) for block in (ESSAYS, STORIES, EXPLANATIONS, LISTS)]
    rows = []
    for i, first in enumerate([*topics(FIRST), *[""] * 180]):
        verb = i % 4 if i < 20 else (i + 1) % 4 if i < 40 else i // 2 % 4
        topic = first or next(kinds[verb])
        split = "held-out" if i % 2 else "search"
        messages = [{"role": "user", "content": VERBS[verb].format(topic)}]
        rows.append({"id": f"long-{i:03d}", "split": split, "messages": messages})
    return rows


def chapters() -> list[dict[str, Any]]:
    """Return the 24 prompts for texts of thousands of tokens."""
    return [
        {"id": f"chapter-{i:02d}", "messages": [{"role": "user", "content": CHAPTERS[i % 3].format(topic)}]}
        for i, topic in enumerate(topics(LONG))
    ]
