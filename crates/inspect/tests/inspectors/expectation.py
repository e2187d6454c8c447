"""The facts and sentences that the tests expect of each sample."""

EXPECTED = {}


def expect(format_name, old, new, facts, sentences):
    EXPECTED[format_name] = {"old": old, "new": new, "facts": facts, "sentences": sentences}
