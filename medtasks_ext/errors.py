"""The one error type that users see."""


class MedtasksError(Exception):
    """Bad input, said in words: what is wrong, where, and how to mend it.

    The command line prints the message without a traceback and exits with code 2.
    """

    def __init__(self, what: str, *, where: object = None, remedy: str = "") -> None:
        self.what, self.where, self.remedy = what, where, remedy
        place = f"{where}: " if where is not None else ""
        super().__init__(f"{place}{what}" + (f"\n  → {remedy}" if remedy else ""))
