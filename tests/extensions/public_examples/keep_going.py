"""Makes the model continue until it says that the tests pass."""

from wolo.extension import CheckedAnswer, Extension


def extend(ext: Extension) -> None:
    @ext.on_stop
    def check(stop: CheckedAnswer) -> None:
        if "tests pass" not in stop.answer and not stop.is_again:
            stop.resume("Run the tests first.")
