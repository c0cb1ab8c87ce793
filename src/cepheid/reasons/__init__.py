"""Why events do not match: `cepheid.why_not`.

Comes in: a query, events, and the rows of those that should make a match, or be some of its events. Goes out: a `WhyNot`, which has the match if
there is one, and otherwise the smallest sets of constructs of the query that exclude the events, each with its place in the text, and with the
values that did it.

The answer is right by construction. A RELAXATION takes one construct out of the query: one condition of a FILTER, one window, gap or negation, `;`
for one `:`, .. (`relaxations` has them all; each gives a query that can be printed and run). A set of relaxations is a reason if the query without
these constructs has a match with the events, and no query does that lacks fewer of them. Nothing is guessed: each of these queries runs, in the
engine, over the same events (`relaxed_run`).

Monotone or not. Let the BODY be the query without strategies, THEN, LIMIT and CONSUME. In it each relaxation but those named below gives more
matches, never fewer: negated patterns are taken out as wholes, and nothing inside them is relaxed. So a set that works works with more in it, and
`minimal_sets` finds all minimal sets by Reiter's hitting sets, with far fewer runs than there are subsets. Not monotone are

- CHOICES: strategies at any level, THEN, LIMIT and CONSUME compare a match with others, and more matches may hide the one that is asked for. But a
  match of the whole query is one of the body: `;` stands there for THEN, and ALL where what is next may begin earlier (under POINT). So each minimal
  set of the body is tried alone, then with one choice taken out, then with two, .. A proper subset of such a set either is too small for the body, or
  has been tried. What is not sought: sets that take out more of the body than needed, so that another match wins; they say something about the
  choice, and nothing about what excludes the events.
- STRUCTURE: other keys of partitions, an event that is missing, counts, and the order of a sequence. These are taken out only where no set of the
  other relaxations works: first one, then two (`MAX_STRUCTURE`). A smaller set has failed then, with everything else taken out.

Where an event is asked for that no atom of the pattern can take, or events that go together in no way, `WhyNot.misfits` says so.

Bounded. A match has only the rows asked for and OTHERS: at first all rows that the pattern could take, then, where these give too many matches
(`MAX_BYTES`), the nearest ones, fewer each time (`OTHERS`); `WhyNot.notes` says how many. A set is still a
reason then, but with an event farther off a smaller one may be. `MAX_RUNS` bounds the queries that are run, `MAX_WAYS` the
sets that are reported, `MAX_ROWS` the events: of a longer table the question is about the part that can matter, and what lies beside it (`part`). A
query without a window or a gap may look farther; where one did, a note says so.
"""

from __future__ import annotations

from cepheid.reasons.answer import EventsFound, Reason, Way, WhyNot
from cepheid.reasons.question import why_not

__all__ = ["EventsFound", "Reason", "Way", "WhyNot", "why_not"]
