"""NXT inside a window: a greedy walk forward against deadlines.

**The winner is found from the front.** Two supports with the same end differ first at the least position of their symmetric difference, and the one
that has it wins. So of supports that start at s1 < s2 the first wins whatever follows: the oldest start that competes and from which a
match can still end here is the winner's; and of supports that agree so far, the one with the earlier next mark. (All runs whose supports
agree so far are followed together, as the set of states they rest in: they are one candidate.) Hence: from the states reached so far, mark the
EARLIEST event that some transition can mark such that the match can still end by marking the event at hand.

**Whether it can is one number per state.** In this fragment (`cepheid.automata.waiting`) waiting costs nothing: a run that rests in a state v
rests there as long as it likes, and the windows speak of the start alone, which is chosen already. So who can complete from v after position
p can complete from v after every earlier position: by the same marks. There is a ``deadline[v]`` such that v, reached at p, can be completed
exactly if p < deadline[v]; it is the greatest first mark of a run from v that ends here.

**The numbers are kept while the stream goes by.** Let greatest_first[x][v] be the greatest position of the first mark of a run from v that
rests in x now (-1: none). An event at p that can take x -> u makes longer runs of those that rest in x: greatest_first[u][v] becomes the
greater of itself and greatest_first[x][v], for every v, and greatest_first[u][x] becomes p, as the run from x itself marks p first. Nothing
else changes it: an event that is not marked changes nothing for what waits. All of an event's transitions read the numbers before it: a mark
must not extend itself. A final transition out of x gives in the same way deadline[v] = greatest_first[x][v] and deadline[x] = p. For v = the
initial state, a run from v is a match and its first mark the start: some match ends here inside the bounds exactly if deadline[initial] is at least
the least start that they allow.

**Every lower bound on the start is one number,** ``low``, which never decreases: time window, count window, consumption. A start that is below
it once is below it for ever, so an entry greatest_first[x][initial] < low is as good as -1; greatest_first[x][v] of the other v speaks of
runs from v, which follow a start that the walk has checked already, so it needs no bound. For the same reason an event is passed over
altogether where every source x that it could leave has greatest_first[x][initial] < low: each mark but the first of a match that competes now or
later leaves a state in which that match's start rests, at or above today's low. (So, by induction along such a match, all numbers that it
needs were kept, and the events it marks are in the rings. What is left out only lowers numbers of runs that no such match takes; what is there are
true runs.)

Update O(transitions fired x states), whatever the window. Output O(transitions out of the states reached x log window) per position: the
events that satisfy a predicate are a sorted ring of positions, searched by galloping from where the last search ended. Memory: O(states^2)
numbers and the events of the window that can be marked, once per predicate, per partition. Source: Cepheid's own, for what foundations-cel proves
without windows (Theorem 6, Algorithm 5).

When to use this: NXT in a window, where partial matches can only wait (`;`, `+`, OR; no `:`, gap or negation). The choice in the match graph of
guards (`guarded_choice_run`), which takes every NXT, takes 3 to 6 times as long, end by end (`per_end`) 2 to 4 times. Without a window the automaton
of the strategy in a match graph (`match`) is as fast, or up to 1.4 times faster, and may be exponential; this is not.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cepheid.engine.evaluations.block_run import HEADER, KEPT, POSITION, STARTS
from cepheid.engine.evaluations.choosing.supports import SupportEvaluation, SupportMethod, waiting
from cepheid.engine.evaluations.method import Guarantee
from cepheid.engine.memory import blocks
from cepheid.engine.memory.blocks import BlockLayout, Ring
from cepheid.engine.memory.checks import demand, inside
from cepheid.engine.memory.pools import power_of_two
from cepheid.errors import LimitError
from cepheid.language.syntax import Strategy

if TYPE_CHECKING:
    from typing import Unpack

    from cepheid.automata.program import Program
    from cepheid.automata.waiting import WaitingAutomaton, WaitingMove
    from cepheid.engine.evaluations.base import Bounds
    from cepheid.engine.evaluations.choosing.supports import SupportSizes
    from cepheid.engine.evaluations.method import Terms
    from cepheid.engine.memory.pools import Array

PAIR_LIMIT = 1 << 20
"""Most numbers `greatest_first` of one partition, 8 bytes each: pairs of states of which one is reached from the other."""

MERGE_LIMIT = 1 << 20
"""Most merges of such numbers that one event may ask for."""

ACTION_LIMIT = 1 << 24
"""Numbers that the records of letters may take (4 bytes each); past it they are forgotten, and made anew when a letter comes again."""

LEAVES, ENDS, HELD = 1, 2, 4
"""Flags of a letter: a move that is not final, a final one leaves the initial state; merges read what other merges write."""


class Next(SupportEvaluation):
    """The run state of NXT over any number of partitions; the interface is that of `Evaluation`.

    program: of the pattern before SELECT's projection. Raises NotSupportedError outside the fragment of `cepheid.automata.waiting`, LimitError
    past PAIR_LIMIT or MERGE_LIMIT. Update O(transitions fired x states) per event, delay O(transitions x log window) per position.
    """

    kernel_name: ClassVar[str] = "next"

    def __init__(self, program: Program, *, sizes: SupportSizes | None = None, **bounds: Unpack[Bounds]) -> None:
        self.tables = NextTables(waiting(program))
        super().__init__(program, sizes=sizes, **bounds)
        self._deadline: Array = np.zeros(self.tables.states, np.int64)
        self._sets: Array = np.zeros(3 * self.tables.states, np.int32)
        self._set("states", self.tables.states)
        self._set("rings", len(self.tables.layout.rings))
        self._set("directory", self.tables.layout.directory)
        self._set("block_limit", blocks.BLOCK_LIMIT)
        self.mends |= {"pool": "_mend_pool", "limit": "_mend_ring"}

    def _layout(self) -> BlockLayout:
        return self.tables.layout

    def _tables(self) -> tuple[Array, ...]:
        tables = self.tables
        pool = (self.store.sizes, self.store.pool)
        return (*pool, tables.place_of, tables.actions, tables.move_start, tables.moves, tables.held, self._deadline, self._sets)

    def _learned(self, code: int, letter: int) -> None:
        if self.tables.used > ACTION_LIMIT:  # then the kernel asks for this letter again, at once
            self.codes.forget()
            self.tables.forget()
        else:
            self.tables.learn(code, letter)

    def _forgotten(self) -> None:
        self.tables.forget()

    def _letters(self, entries: list[Array]) -> Array:
        return np.concatenate([np.zeros(0, np.int64), *(ring[:, 1] for ring in entries[1:])])

    def _check(self, words: Array, entries: list[Array]) -> None:
        first = words[:, self.tables.first_word :]
        demand(inside(first, -1, np.maximum(words[:, [POSITION]], 1)), inside(self._letters(entries), 0, 1 << self.program.bits))


class NextTables:
    """What the kernel of NXT reads of an automaton: the layout of a block, the moves of the walk, and what each letter does.

    layout: of a partition's block (see `cepheid.kernel.next`). states: the initial and the waiting ones. move_start, moves: int32, the moves
    of the walk by state. place_of: int32, code -> place of its record in `actions`, 0 if it does nothing. actions: int32, records of
    `kernel.next.ACTION`. used: how many numbers of `actions` are in use. held: int64, as long as the longest list of merges. Raises LimitError past
    PAIR_LIMIT and MERGE_LIMIT. O(states x moves) to build.
    """

    def __init__(self, automaton: WaitingAutomaton) -> None:
        self.automaton = automaton
        self.states = automaton.waiting + 1
        self._inner = [(x, move) for x, moves in enumerate(automaton.moves) for move in moves if not move.final]
        self._ring = {test: 1 + place for place, test in enumerate(sorted({_test(move) for _, move in self._inner}))}
        self.first_word = len(HEADER) + 1 + len(self._ring)
        self._first = self._numbered()
        runs = Counter(x for x, _ in self._first)
        if sum(runs[x] for x, _ in self._inner) > MERGE_LIMIT:
            raise self._too_large(f"{MERGE_LIMIT} updates per event (MERGE_LIMIT)")
        words = (*HEADER, *[-1] * (1 + len(self._ring)), *[-1] * len(self._first))
        self.layout = BlockLayout(words, (STARTS, *[Ring(2)] * len(self._ring)), kept=KEPT)
        self.move_start, self.moves = self._walk()
        self.forget()

    def _numbered(self) -> dict[tuple[int, int], int]:
        """(x, v) -> word of greatest_first[x][v], where a run from v can come to rest in x."""
        onward: list[set[int]] = [set() for _ in range(self.states)]
        for x, move in self._inner:
            onward[x].add(move.target)
        pairs: list[tuple[int, int]] = []
        for v in range(self.states):
            reached, todo = set(onward[v]), list(onward[v])
            while todo:
                new = onward[todo.pop()] - reached
                reached |= new
                todo += new
            pairs += [(x, v) for x in sorted(reached)]
            if len(pairs) > PAIR_LIMIT:
                raise self._too_large(f"{PAIR_LIMIT} numbers per partition (PAIR_LIMIT)")
        return {pair: self.first_word + place for place, pair in enumerate(sorted(pairs))}

    def _too_large(self, what: str) -> LimitError:
        return LimitError(
            f"NXT over this pattern needs more than {what}: it has {self.states} states",
            help="make the pattern smaller: shorter counted repetitions, fewer alternatives",
        )

    def _walk(self) -> tuple[Array, Array]:
        starts, moves = [0], []
        for outgoing in self.automaton.moves:
            for move in outgoing:
                if not move.final:
                    ring = self._ring[_test(move)]
                    moves += [self.layout.ring(ring), len(HEADER) + ring, move.target]
            starts.append(len(moves))
        return np.array(starts, np.int32), np.array(moves or [0], np.int32)

    # ------------------------------------------------------------------------------------------------ letters

    def forget(self) -> None:
        """Start again without any letter."""
        self.place_of: Array = np.zeros(16, np.int32)
        self.actions: Array = np.zeros(256, np.int32)
        self.held: Array = np.zeros(1, np.int64)
        self.used = 1  # place 0 says that a letter does nothing

    def learn(self, code: int, letter: int) -> None:
        """Write down what a letter does, under its code; O(transitions fired x states)."""
        record = self._record(code, letter)
        if code >= len(self.place_of):
            self.place_of = np.concatenate([self.place_of, np.zeros(power_of_two(code + 1), np.int32)])
        self.place_of[code] = self.used if record else 0
        if self.used + len(record) > len(self.actions):
            self.actions = np.concatenate([self.actions, np.zeros(power_of_two(self.used + len(record)), np.int32)])
        self.actions[self.used : self.used + len(record)] = record
        self.used += len(record)

    def _record(self, code: int, letter: int) -> list[int]:
        fired = [(x, move) for x, moves in enumerate(self.automaton.moves) for move in moves if move.enabled(letter)]
        if not fired:
            return []
        inner = sorted({(x, move.target) for x, move in fired if not move.final})
        ending = sorted({x for x, move in fired if move.final})
        sources = sorted({x for x, _ in fired})
        merges = [(self._first[u, v], self._first[x, v]) for x, u in inner if x != u for v in range(self.states) if (x, v) in self._first]
        written = {to for to, _ in merges}
        flags = (inner[:1] != [] and inner[0][0] == 0) * LEAVES | (0 in ending) * ENDS
        flags |= any(source in written for _, source in merges) * HELD
        self.held = np.zeros(max(len(self.held), len(merges)), np.int64)
        lists: tuple[list[Any], ...] = (
            [self._first[x, 0] for x in sources if x] if 0 not in sources else [],
            [self._first[x, 0] for x in ending if x],
            [(v, self._first[x, v]) for x in ending if x for v in range(self.states) if (x, v) in self._first],
            [x for x in ending if x],
            [self.layout.ring(self._ring[test]) for test in sorted({_test(move) for _, move in fired if not move.final})],
            merges,
            sorted({self._first[u, x] for x, u in inner}),
        )
        flat = [number for part in lists for item in part for number in (item if isinstance(item, tuple) else (item,))]
        return [code, flags, *map(len, lists), *flat]

    @property
    def nbytes(self) -> int:
        """Bytes of the tables."""
        arrays = (self.move_start, self.moves, self.place_of, self.actions, self.held)
        return sum(int(array.nbytes) for array in arrays)


def _test(move: WaitingMove) -> tuple[int, int]:
    return move.requires, move.forbids


class NextMethod(SupportMethod):
    """NXT by deadlines."""

    name = "next"
    evaluation = Next
    strategy = Strategy.NXT

    def guarantee(self, terms: Terms) -> Guarantee:
        """As in the head of this file."""
        return Guarantee(
            evaluation="NXT by deadlines: the earliest events from which the match still ends; no partial matches; then its labellings",
            update="O(fired transitions x states) per event, whatever the window",
            state=terms.state("events that may be marked (once per predicate)"),
            delay="O(transitions x log of the window) per event of a match",
        )
