"""Values of earlier places, against a search through all of them."""

from __future__ import annotations

import random

import numpy as np

from cepheid.engine.evaluations.around.past import Past


def test_the_last_value_up_to_a_place(seed):
    rng = random.Random(seed)
    for _ in range(50):
        past, known, least = Past(), [], -1
        for _ in range(rng.randint(1, 4)):
            drawn = [(rng.choice([0, 1, 5, 10**6]), rng.randint(0, 8)) for _ in range(rng.randint(0, 9))]
            lines = {(owner, place): rng.randint(-1, place) for owner, place in drawn}
            lines = {key: value for key, value in lines.items() if key not in {each[:2] for each in known}}
            known += [(*key, value) for key, value in lines.items()]
            past.add(
                *(np.array(column, np.int64) for column in (list(zip(*lines, strict=True)) or [(), ()])),
                np.array(list(lines.values()), np.int64),
                np.array([10 * place for _, place in lines], np.int64),
            )
            if rng.random() < 0.3:
                # What is asked from then on is at places of that time or later.
                least = max(least, rng.randint(0, 5))
                past.expire(10 * least)
            if rng.random() < 0.3:
                gone = rng.choice([0, 1, 5])
                past.forget(np.array([gone]))
                known = [line for line in known if line[0] != gone]
            if rng.random() < 0.3:
                past.rename(10**6, 0)
                known = [(0 if line[0] == 10**6 else line[0], *line[1:]) for line in known if line[0] != 0]
            if rng.random() < 0.3:
                before, past = past, Past()
                past.load(before.dump(), None)
            asked = [(rng.choice([0, 1, 2, 5, 10**6]), rng.randint(least, 9)) for _ in range(20)]
            places, values = past.last(*(np.array(column) for column in zip(*asked, strict=True)))
            for (partition, place), found in zip(asked, zip(places.tolist(), values.tolist(), strict=True), strict=True):
                before = [line[1:] for line in known if line[0] == partition and line[1] <= place]
                assert found == max(before, default=(-1, -1))
    assert past.nbytes >= 0
