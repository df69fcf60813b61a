"""Judging open-ended answers with models: a second stage over the stored responses of a run."""
