"""Start of `spiel-cr`, during which Ctrl-C must end it without a traceback.

Until signals are reset, Ctrl-C makes Python print one. Therefore, this module and its
packages import only modules that Python has loaded anyway.
"""

import signal


def main() -> None:
    """Run the command `spiel-cr`."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Ignored signals, such as SIGHUP under `nohup`, stay ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    from . import process

    process.main()
