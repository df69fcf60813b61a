"""What only one suite needs, in a module of its name, which `suite.yaml` names; no room imports from here."""
