"""Every answer of any runs: what is shown of them, in a browser and in the terminal."""
