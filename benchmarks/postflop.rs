// Solves a spot by postflop-solver (https://github.com/b-inary/postflop-solver).
//
// Copy this file to the folder `examples` of that project, build it with
// `cargo build --release --example postflop`, and pass the path of the program,
// target/release/examples/postflop, to `python -m benchmarks spots --peer`.
//
// Arguments: board, pot, stack, largest exploitability in chips, ranges of both
// players, sizes of bets, sizes of raises. Prints a line of JSON. Needs Linux.

use postflop_solver::*;
use std::time::{Duration, Instant};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [board, pot, stack, goal, oop, ip, bets, raises] = &words[..] else {
        panic!("eight arguments are needed");
    };
    let card = |i: usize| match board.get(i..i + 2) {
        Some(text) => card_from_str(text).unwrap(),
        None => NOT_DEALT,
    };
    let cards = CardConfig {
        range: [oop.parse().unwrap(), ip.parse().unwrap()],
        flop: flop_from_str(&board[..6]).unwrap(),
        turn: card(6),
        river: card(8),
    };
    let sizes = BetSizeOptions::try_from((bets.as_str(), raises.as_str())).unwrap();
    let both = [sizes.clone(), sizes];
    let tree = TreeConfig {
        initial_state: match board.len() {
            6 => BoardState::Flop,
            8 => BoardState::Turn,
            _ => BoardState::River,
        },
        starting_pot: pot.parse().unwrap(),
        effective_stack: stack.parse().unwrap(),
        flop_bet_sizes: both.clone(),
        turn_bet_sizes: both.clone(),
        river_bet_sizes: both,
        ..Default::default()
    };
    let mut game = PostFlopGame::with_config(cards, ActionTree::new(tree).unwrap()).unwrap();
    game.allocate_memory(false);
    let goal: f32 = goal.parse().unwrap();
    let start = Instant::now();
    let (mut evaluating, mut iterations, mut exploitability) = (Duration::ZERO, 0, f32::MAX);
    while exploitability > goal {
        solve_step(&game, iterations);
        iterations += 1;
        if iterations % 10 == 0 {
            let begun = Instant::now();
            exploitability = compute_exploitability(&game);
            evaluating += begun.elapsed();
        }
    }
    let seconds = (start.elapsed() - evaluating).as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kibibytes: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    println!(
        "{{\"iterations\": {iterations}, \"seconds\": {seconds}, \
         \"exploitability\": {exploitability}, \"peak_memory_bytes\": {}}}",
        kibibytes * 1024
    );
}
