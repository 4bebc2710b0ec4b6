"""The first moments of `spiel-cr`, in which Ctrl-C must end it without a traceback.

Until signals are reset, Python answers with one. So nothing is imported before that,
here and in the packages around, but what Python has anyway.
"""

import signal


def main() -> None:
    """Entry point of the command `spiel-cr`."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # What is ignored, as `nohup` has it, stays so.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    from . import process

    process.main()
