"""Difficulty levels from a panel's runs, and stratified samples with a target mix of them (MLB)."""
