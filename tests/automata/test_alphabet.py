"""The alphabet of automata: each bit of a letter means one thing and has one scope, whatever the construction."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest
from enough import Enough
from pattern_cases import CASES, CHOOSING, SCHEMA, SEED, random_pattern

from cepheid.automata import Alphabet, Flag, Program, Scope, Tracker, Transition, end_program, program_of
from cepheid.automata import alphabet as alphabets
from cepheid.automata.alphabet import Predicate
from cepheid.automata.supports import labelling, shown_variables
from cepheid.automata.waiting import obstacle
from cepheid.engine.letters.codes import having
from cepheid.engine.letters.words import are_letters, joined_words, parts_of, types_in
from cepheid.errors import LimitError
from cepheid.language.syntax import Strategy
from cepheid.logical.plan import Event, Link, Select, Sequence


def check(program: Program) -> None:
    alphabet = program.automaton.alphabet
    masks = [alphabet.mask(scope) for scope in Scope]
    assert sum(masks) == (1 << alphabet.width) - 1, "each bit has one scope, and there is none without"
    asked = 0
    for move in program.automaton.transitions:
        asked |= move.requires | move.forbids
    assert not asked >> alphabet.width, "no transition asks for a bit that means nothing"
    for place, tracker in enumerate(alphabet.trackers):
        earlier = alphabet.mask(Scope.EVENT) | sum(other.mask for other in alphabet.trackers[:place]) | alphabet.mask(Scope.SUPPORT)
        assert all(not (move.requires | move.forbids) & ~earlier for move in tracker.moves), "a tracker reads what is there before it"


def test_every_bit_means_one_thing() -> None:
    rng = random.Random(f"{SEED} alphabet")
    drawn = Enough(CASES, trackers=1, flags=20)
    for _ in drawn:
        pattern = random_pattern(rng, rng.choice((1, 2)))
        whole = program_of(pattern, SCHEMA, variables=None, strategy=Strategy.ALL)
        try:
            programs = [whole, end_program(whole, variables=None, strategy=rng.choice(CHOOSING)).chosen]
        except LimitError as error:
            if "MAX_RELATIONS" not in error.fact:
                raise
            drawn.seen["refused"] += 1
            continue
        if obstacle(whole.automaton) is None:
            programs.append(labelling(whole, shown_variables(whole.label_sets)))
        for program in programs:
            check(program)
            drawn.seen["trackers"] += bool(program.trackers)
            drawn.seen["flags"] += len(program.automaton.alphabet.flags)
    assert drawn.seen["refused"] <= 10 + CASES // 50


def test_nested_strategies_have_trackers_behind_each_other() -> None:
    inner = Select(Strategy.NXT, Sequence((Event("A"), Event("B")), (Link(";"),)))
    pattern = Sequence((inner, Select(Strategy.LAST, Sequence((Event("A"), Event("C")), (Link(";"),)))), (Link(";"),))
    program = program_of(pattern, SCHEMA, variables=None, strategy=Strategy.ALL)
    check(program)
    assert [tracker.bit for tracker in program.trackers] == sorted(tracker.bit for tracker in program.trackers)


def test_letters_and_masks_ask_the_same() -> None:
    """Of every alphabet: what a transition asks of masks is what `having` asks of letters."""
    rng = random.Random(f"{SEED} letters")
    for _ in range(CASES):
        kinds = [rng.choice([None, f"T{bit}"]) for bit in range(rng.randint(0, 5))]
        predicates = tuple(Predicate(bit, kind) for bit, kind in enumerate(kinds))
        tracker = Tracker(len(kinds), rng.choice([2, 3, 4]), ())
        alphabet = Alphabet(predicates, (tracker,), (Flag(len(kinds) + tracker.width, "last event"),))
        types = [bit for bit, kind in enumerate(kinds) if kind is not None]
        masks = {}
        for conditions in range(1 << alphabet.width):
            if (conditions & alphabet.types).bit_count() > 1:
                continue
            event = sum(value for bit, value in enumerate(alphabet.values) if conditions >> bit & 1)
            masks[event | conditions >> len(kinds) << alphabet.event_bits] = conditions
        assert len(masks) == (1 << alphabet.width - len(types)) * (1 + len(types)), "each mask has a letter of its own"
        assert all(alphabet.mask_of(letter) == mask for letter, mask in masks.items())
        assert max(masks).bit_length() <= alphabet.bits
        letters = np.array(list(masks), rng.choice([np.uint32, np.uint64, np.int32]))
        tests = [(rng.getrandbits(alphabet.width), rng.getrandbits(alphabet.width) & rng.getrandbits(alphabet.width)) for _ in range(3)]
        for some in (tests[:1], tests):
            wanted = [any(mask & requires == requires and not mask & forbids for requires, forbids in some) for mask in masks.values()]
            assert having(letters, alphabet, some).tolist() == wanted


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_numbers_and_words_ask_the_same_as_masks(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every alphabet, where letters begin with the number of a spelling, and spellings have words of some bits."""
    monkeypatch.setattr(alphabets, "SPELLED_BITS", 0)
    monkeypatch.setattr(alphabets, "WORD_BITS", bits)
    rng = random.Random(f"{SEED} numbers {bits}")
    for _ in range(CASES):
        kinds = [rng.choice([None, None, f"T{bit}"]) for bit in range(rng.randint(1, 6))]
        predicates = tuple(Predicate(bit, kind) for bit, kind in enumerate(kinds))
        tracker = Tracker(len(kinds), rng.choice([2, 3, 4]), ())
        spelled = Alphabet(predicates, (tracker,), (Flag(len(kinds) + tracker.width, "last event"),))
        masks = [mask for mask in range(1 << len(kinds)) if (mask & spelled.types).bit_count() <= 1]
        spellings = {mask: sum(value for bit, value in enumerate(spelled.values) if mask >> bit & 1) for mask in masks}
        numbers = dict(zip(masks, rng.sample(range(1000), len(masks)), strict=True))
        alphabet = dataclasses.replace(spelled.fitted(), numbering={numbers[mask]: spellings[mask] for mask in masks})
        assert (alphabet.event_bits, alphabet.number_bits) == (32, 32)
        letters = {numbers[mask] | rest << 32: mask | rest << len(kinds) for mask in masks for rest in range(1 << tracker.width + 1)}
        assert all(alphabet.mask_of(letter) == mask for letter, mask in letters.items())
        for events in (masks, list(letters.values())):
            tests = [(rng.getrandbits(alphabet.width), rng.getrandbits(alphabet.width) & rng.getrandbits(alphabet.width)) for _ in range(3)]
            if events is masks:
                tests = [(requires & (1 << len(kinds)) - 1, forbids & (1 << len(kinds)) - 1) for requires, forbids in tests]
                given = np.array([parts_of(spellings[mask], len(alphabet.words)) for mask in masks], np.uint64)
                assert [joined_words(words) for words in given.tolist()] == list(spellings.values())
                assert are_letters(given, alphabet)
            else:
                given = np.array(list(letters), np.uint64)
            wanted = [any(mask & requires == requires and not mask & forbids for requires, forbids in tests) for mask in events]
            assert having(given, alphabet, tests).tolist() == wanted
            kept = alphabet.read_with(tests)
            for requires, forbids in tests if events is masks else ():
                less = np.array([joined_words(row) for row in given.tolist()]) & np.array(kept)[types_in(given, alphabet)]
                rows = np.array([parts_of(spelling, len(alphabet.words)) for spelling in less.tolist()], np.uint64)
                assert (having(rows, alphabet, [(requires, forbids)]) == having(given, alphabet, [(requires, forbids)])).all()


def test_numbers_that_have_no_room_beside_trackers() -> None:
    predicates = tuple(Predicate(bit) for bit in range(70))
    beside = [Alphabet(predicates, (Tracker(70, 1 << width, ()),)).fitted() for width in (1, 30, 31, 42, 43)]
    assert [(alphabet.number_bits, alphabet.bits) for alphabet in beside] == [(32, 33), (32, 62), (31, 62), (20, 62), (20, 63)]


@pytest.mark.parametrize(
    ("move", "texts"),
    [
        (Transition(0, 1, 0b1), []),
        (Transition(0, 1, 0b0101), ["tracker 1 = 2"]),
        (Transition(0, 1, 0b1000, None, 0b0110), ["tracker 1 = 0", "last event"]),
        (Transition(0, 1, 0, None, 0b1000), ["not last event"]),
    ],
)
def test_what_is_asked_beyond_the_event(move: Transition, texts: list[str]) -> None:
    alphabet = Alphabet((Predicate(None, "A"),), (Tracker(1, 3, ()),), (Flag(3, "last event"),))
    assert alphabet.width == 4
    assert list(alphabet.beyond_the_event(move)) == texts
