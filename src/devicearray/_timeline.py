"""Timeline placeholder."""


class Timeline:
    def __init__(self, log: object) -> None:
        self.log = log
