"""From letters to matches: here is what all evaluations share, in the rooms are those of one kind each.

`graph`: all matches. `counts`: their number. `choosing`: strategies of what waits. `guards`: what compares events.
`around`: what stands around an evaluation. `absences`: NOT FOLLOWED BY.
"""
