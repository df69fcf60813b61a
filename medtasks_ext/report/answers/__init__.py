"""Every answer of the runs of a report: what is shown of them, in a browser and in the terminal."""
