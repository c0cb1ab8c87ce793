"""The cookbook of the workbench: questions that people ask, each with a query and a few events."""

from __future__ import annotations

from cepheid.records import record


@record(slots=False)
class Example:
    """A question. format, events: as in a request (`inputs`). ended: whether no events follow, so that absences are decided."""

    name: str
    asks: str
    query: str
    format: str
    events: str
    ended: bool = False


LOGINS = """\
type,ts,user,address
Failure,2026-03-02T09:00:00Z,ana,10.0.0.7
Failure,2026-03-02T09:00:04Z,ana,10.0.0.7
Success,2026-03-02T09:00:05Z,ben,10.0.0.9
Failure,2026-03-02T09:00:09Z,ana,10.0.0.7
Failure,2026-03-02T09:00:12Z,ben,10.0.0.9
Success,2026-03-02T09:00:15Z,ana,10.0.0.7
Failure,2026-03-02T09:01:30Z,cyd,10.0.0.8
Success,2026-03-02T09:01:41Z,cyd,10.0.0.8
"""

ORDERS = """\
type,ts,order,amount
Order,2026-03-02T10:00:00Z,1,40.0
Order,2026-03-02T10:05:00Z,2,15.5
Payment,2026-03-02T10:12:00Z,1,40.0
Order,2026-03-02T10:20:00Z,3,99.0
Payment,2026-03-02T11:35:00Z,3,99.0
Order,2026-03-02T11:50:00Z,4,12.0
Payment,2026-03-02T11:58:00Z,4,12.0
"""

PRICES = """\
type,ts,symbol,price,volume
Trade,2026-03-02T14:00:00Z,KLM,10.0,100
Trade,2026-03-02T14:00:01Z,XYZ,51.0,40
Trade,2026-03-02T14:00:02Z,KLM,10.4,250
Trade,2026-03-02T14:00:03Z,KLM,10.9,300
Trade,2026-03-02T14:00:04Z,XYZ,50.5,60
Trade,2026-03-02T14:00:05Z,KLM,11.3,120
Trade,2026-03-02T14:00:06Z,KLM,10.8,900
Trade,2026-03-02T14:00:07Z,XYZ,52.0,70
Trade,2026-03-02T14:00:08Z,XYZ,53.5,80
Trade,2026-03-02T14:00:09Z,XYZ,54.1,90
"""

CLICKS = """\
type,ts,user,page
Click,2026-03-02T08:00:00Z,ana,/home
Click,2026-03-02T08:00:20Z,ana,/shoes
Click,2026-03-02T08:01:00Z,ben,/home
Click,2026-03-02T08:02:10Z,ana,/shoes/42
Click,2026-03-02T08:20:00Z,ben,/hats
Click,2026-03-02T09:15:00Z,ana,/home
Click,2026-03-02T09:16:30Z,ana,/cart
"""

READINGS = """\
type,ts,sensor,value
Reading,2026-03-02T06:00:00Z,s1,78.0
Reading,2026-03-02T06:01:00Z,s1,81.5
Reading,2026-03-02T06:01:00Z,s2,40.0
Reading,2026-03-02T06:02:00Z,s1,83.0
Reading,2026-03-02T06:03:00Z,s1,79.0
Reading,2026-03-02T06:04:00Z,s1,74.0
Reading,2026-03-02T06:04:00Z,s2,82.0
Reading,2026-03-02T06:05:00Z,s2,74.5
"""

BEATS = """\
type,ts,host
Beat,2026-03-02T12:00:00Z,web1
Beat,2026-03-02T12:00:05Z,web2
Beat,2026-03-02T12:00:30Z,web1
Beat,2026-03-02T12:00:35Z,web2
Beat,2026-03-02T12:01:00Z,web1
Beat,2026-03-02T12:01:30Z,web1
Beat,2026-03-02T12:02:00Z,web1
Beat,2026-03-02T12:03:40Z,web2
Beat,2026-03-02T12:03:50Z,web1
"""

CARDS = """\
type,ts,card,town,amount
Use,2026-03-02T16:00:00Z,1111,Oslo,12.5
Use,2026-03-02T16:04:00Z,2222,Rome,80.0
Use,2026-03-02T16:11:00Z,1111,Lima,300.0
Use,2026-03-02T16:25:00Z,2222,Rome,14.0
Use,2026-03-02T18:30:00Z,2222,Bonn,22.0
"""

EXAMPLES = (
    Example(
        "Login attack",
        "Three failed logins of one user, then a success, within a minute",
        "SELECT MAX *\nWHERE Failure{3,} AS fails ; Success AS success\nWITHIN 1 minute\nPARTITION BY user",
        "csv",
        LOGINS,
    ),
    Example(
        "Unpaid order",
        "An order that nobody pays within an hour",
        "SELECT *\nWHERE Order AS o NOT FOLLOWED BY Payment FOR 1 hour\nPARTITION BY order",
        "csv",
        ORDERS,
    ),
    Example(
        "Paid late",
        "A payment that comes more than an hour after its order",
        "SELECT o.order AS id, o.amount AS amount, duration() AS took\nWHERE Order AS o ;[> 1 hour] Payment AS p\n"
        "FILTER o.order = p.order\nWITHIN 1 day",
        "csv",
        ORDERS,
    ),
    Example(
        "Rising price",
        "Trades that end a run of at least three, each above the one before: the longest run that ends with each",
        "SELECT MAX count(t) AS trades, first(t.price) AS low, last(t.price) AS high\n"
        "WHERE (Trade AS t FILTER t.price > prev(t).price):{3,}\nWITHIN 1 minute\nPARTITION BY symbol",
        "csv",
        PRICES,
    ),
    Example(
        "Sessions",
        "The clicks of a user with at most 30 minutes between two of them, once 30 minutes have passed without one",
        "SELECT MAX count(c) AS clicks, duration() AS took\nWHERE Click:+[<= 30 minutes] AS c WITHIN 4 hours\n"
        "NOT FOLLOWED BY Click FOR 30 minutes\nPARTITION BY user",
        "csv",
        CLICKS,
        ended=True,
    ),
    Example(
        "Sensor threshold",
        "A value above 80 until the first one below 75",
        "SELECT NXT high, low\nWHERE Reading AS high ; Reading AS low\nFILTER high[value > 80] AND low[value < 75]\n"
        "WITHIN 10 minutes\nPARTITION BY sensor",
        "csv",
        READINGS,
    ),
    Example(
        "Heartbeat lost",
        "A host from which nothing is heard for a minute",
        "SELECT b\nWHERE Beat AS b NOT FOLLOWED BY Beat FOR 1 minute\nPARTITION BY host",
        "csv",
        BEATS,
    ),
    Example(
        "Card in two towns",
        "One card used in two towns within half an hour",
        "SELECT a.card AS card, a.town AS from_town, b.town AS to_town, duration() AS apart\n"
        "WHERE Use AS a ; Use AS b\nFILTER a.card = b.card AND a.town != b.town\nWITHIN 30 minutes",
        "csv",
        CARDS,
    ),
    Example(
        "Bursts, then quiet",
        "Three failures within five steps are a Burst; a Burst, then no failure for ten steps",
        "EVENT Burst(n) AS (SELECT NXT count(f) AS n WHERE F{3} AS f WITHIN 5)\nSELECT b.n AS failures, end_time() AS at\n"
        "WHERE Burst AS b NOT FOLLOWED BY F FOR 10",
        "line",
        "F1 F2 F4 S9 F20 F21 F22 F23 S30 F50 S70",
        ended=True,
    ),
    Example(
        "Best gains (top k)",
        "A purchase and a later sale with a gain of more than 2: click the column `gain` to have the best ones first",
        "SELECT b.amount AS paid, s.amount AS earned, s.amount - b.amount AS gain\nWHERE Buy AS b ; Sell AS s\nWITHIN 10\nHAVING gain > 2",
        "line",
        "Buy1(amount=10) Buy2(amount=12) Sell3(amount=15) Buy4(amount=9) Buy5(amount=14) Sell6(amount=16) Sell12(amount=11)",
    ),
)
"""In the order of the menu."""
