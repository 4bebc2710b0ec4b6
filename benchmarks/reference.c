/* CFR+ with alternating updates on a game in sequence form, one thread of plain C.

   The yardstick of the benchmark: the same formulation as spiel_cr's solver (see
   c_reference.py, which fills in these structures), nothing else. Infosets come parents
   first; those of one infoset's actions are consecutive sequences. */

struct player {
  int infosets;           /* I */
  int sequences;          /* S, the empty one included */
  const int *parent;      /* [I] last own sequence before each infoset */
  const int *first;       /* [I] sequence of each infoset's first action */
  const int *actions;     /* [I] number of actions */
  const int *row;         /* [S + 1] CSR rows of the payoff coupling */
  const int *column;      /* [nnz] the opponent's sequences */
  const double *payoff;   /* [nnz] own utility times chance */
  double *strategy;       /* [S] current action probabilities */
  double *regret;         /* [S] cumulative regrets, never negative */
  double *reach;          /* [S] own reach under the current strategy */
  double *sum;            /* [S] sum over iterations t of t * reach */
  double *value;          /* [S] scratch: counterfactual values of sequences */
};

/* value = payoff coupling times the opponent's reach */
static void leaf_values(struct player *p, const double *restrict other) {
  for (int s = 0; s < p->sequences; s++) {
    double total = 0.0;
    for (int k = p->row[s]; k < p->row[s + 1]; k++)
      total += p->payoff[k] * other[p->column[k]];
    p->value[s] = total;
  }
}

/* Bottom up: values of infosets, regrets, and the next strategy. */
static void match_regrets(struct player *p) {
  double *restrict value = p->value;
  for (int i = p->infosets - 1; i >= 0; i--) {
    const int n = p->actions[i];
    double *restrict strategy = p->strategy + p->first[i];
    double *restrict regret = p->regret + p->first[i];
    const double *own = value + p->first[i];
    double mean = 0.0, total = 0.0;
    for (int a = 0; a < n; a++) mean += strategy[a] * own[a];
    for (int a = 0; a < n; a++) {
      const double r = regret[a] + own[a] - mean;
      regret[a] = r > 0.0 ? r : 0.0;
      total += regret[a];
    }
    const double scale = total > 0.0 ? 1.0 / total : 0.0;
    for (int a = 0; a < n; a++)
      strategy[a] = total > 0.0 ? regret[a] * scale : 1.0 / n;
    value[p->parent[i]] += mean;
  }
}

/* Top down: reach of the next strategy, after the old one has entered the sum. */
static void take_in_and_descend(struct player *p, double weight) {
  double *restrict reach = p->reach;
  for (int s = 0; s < p->sequences; s++) p->sum[s] += weight * reach[s];
  for (int i = 0; i < p->infosets; i++) {
    const double above = reach[p->parent[i]];
    for (int s = p->first[i]; s < p->first[i] + p->actions[i]; s++)
      reach[s] = above * p->strategy[s];
  }
}

/* Iterations done + 1 to done + iterations; player 0 moves first in each. */
void cfr_plus(struct player *players, long done, long iterations) {
  for (long t = done + 1; t <= done + iterations; t++)
    for (int p = 0; p < 2; p++) {
      leaf_values(&players[p], players[1 - p].reach);
      match_regrets(&players[p]);
      take_in_and_descend(&players[p], (double)t);
    }
}
