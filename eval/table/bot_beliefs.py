"""Beliefs of bots during a match, for the terminal and for the review."""

import pyspiel

from spiel_cr.evaluation.referee import Match
from spiel_cr.games.histories import moves_along
from spiel_cr.players import LookaheadResolvingBot, OOSBot, ResolvingBot, SearchBot
from spiel_cr.policies.beliefs import BotBeliefs
from spiel_cr.policies.beliefs.bot_beliefs import short_labels
from spiel_cr.policies.bot_base import as_learner

from . import families

_BELIEVERS = ResolvingBot, LookaheadResolvingBot, SearchBot, OOSBot


def has_beliefs(bot: object) -> bool:
    """Return whether a bot computes beliefs."""
    return isinstance(bot, _BELIEVERS)


def decisions_of(game: pyspiel.Game, match: Match, player: int) -> list[pyspiel.State]:
    """Return the states of a match at which a player acted."""
    return [
        state.clone()
        for state, _ in moves_along(game, match.actions)
        if state.current_player() == player
    ]


def beliefs_during(
    game: pyspiel.Game, match: Match, bot: pyspiel.Bot
) -> list[tuple[pyspiel.State, BotBeliefs]]:
    """Query a bot's beliefs at each of its decisions in a match that is over.

    Args:
      game: The game.
      match: The match.
      bot: The bot, which is restarted; without beliefs, the result is empty.
    """
    if not isinstance(bot, _BELIEVERS):
        return []
    if as_learner(bot) is None:
        bot.restart()
    states = decisions_of(game, match, bot.player_id())
    return [(state, bot.beliefs(state)) for state in states]


def labels_of(
    state: pyspiel.State, beliefs: BotBeliefs, player: int, numbers: dict[str, float]
) -> dict[str, str]:
    """Return descriptions of a player's private information, by the keys of numbers.

    Args:
      state: The decision.
      beliefs: The beliefs that contain the numbers.
      player: The player of the information states.
      numbers: Numbers by information state, or by name of a private state.
    """
    key = state.information_state_string(beliefs.player)
    infosets = beliefs.player_range
    labels = short_labels(list(numbers))
    if families.is_drawn(state.get_game()) and (infosets is None or key in infosets):
        labels = [families.holds_of(state, player, text) for text in numbers]
    return dict(zip(numbers, labels, strict=True))


def lines(state: pyspiel.State, beliefs: BotBeliefs) -> list[str]:
    """Return beliefs as lines of text."""
    me, texts = beliefs.player, []
    for title, player, numbers, form in (
        ("the opponent's range", 1 - me, beliefs.opponent_range, "{} {:.1%}"),
        ("its own range", me, beliefs.player_range, "{} {:.1%}"),
        (
            "its utility if the opponent holds",
            1 - me,
            beliefs.counterfactual_values,
            "{} {:+.3f}",
        ),
    ):
        if numbers is not None:
            labels = labels_of(state, beliefs, player, numbers).values()
            pairs = sorted(
                zip(labels, numbers.values(), strict=True),
                key=lambda pair: (-pair[1], pair[0]),
            )
            texts.append(f"{title}: {', '.join(form.format(*pair) for pair in pairs)}")
    if beliefs.nash_conv is not None:
        texts.append(f"NashConv of its last subgame: {beliefs.nash_conv:.3g}")
    return texts
