"""NXT, LAST, MAX and RESTRICTED where a partial match may wait, without listing what they choose among; and what consumption leaves."""
