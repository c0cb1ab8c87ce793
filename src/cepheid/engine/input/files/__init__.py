"""Files of events as Arrow: their kinds, and the streams of one file or several."""
