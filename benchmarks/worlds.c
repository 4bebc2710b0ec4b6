/* PCFR+ with alternating updates on a game of hidden boards, one thread of plain C.

   The yardstick of the benchmark hidden_boards: the same pairs of a sequence and a world
   and the same rule as spiel_cr's (see plain_worlds.py, which fills in these structures),
   nothing else. Infosets come parents first; those of one infoset's actions are
   consecutive sequences. REAL is float or double. */

struct side {
  int infosets;           /* I */
  int sequences;          /* S, the empty one included */
  const int *parent;      /* [I] last own sequence before each infoset */
  const int *first;       /* [I] sequence of each infoset's first action */
  const int *actions;     /* [I] number of actions */
  const int *row;         /* [S + 1] where each sequence's worlds begin */
  const int *world;       /* [P] terminal worlds */
  const REAL *payoff;     /* [W] own utility in each */
  REAL *strategy;         /* [S] current action probabilities */
  REAL *regret;           /* [S] cumulative regrets, never negative */
  REAL *reach;            /* [S] own reach under the current strategy */
  REAL *average;          /* [S] weighted mean of reach */
  REAL *value;            /* [S] scratch: counterfactual values of sequences */
};

/* value = U · (payoff · (Uᵀ of the other player · its reach)) */
static void leaf_values(struct side *p, const struct side *other, REAL *restrict at,
                        int worlds) {
  for (int w = 0; w < worlds; w++) at[w] = 0;
  for (int s = 0; s < other->sequences; s++) {
    const REAL reach = other->reach[s];
    for (int k = other->row[s]; k < other->row[s + 1]; k++)
      at[other->world[k]] += reach;
  }
  for (int w = 0; w < worlds; w++) at[w] *= p->payoff[w];
  for (int s = 0; s < p->sequences; s++) {
    REAL total = 0;
    for (int k = p->row[s]; k < p->row[s + 1]; k++) total += at[p->world[k]];
    p->value[s] = total;
  }
}

/* Bottom up: values of infosets, regrets, and the next strategy, which predicts that the
   last regret comes once more. */
static void match_regrets(struct side *p) {
  for (int i = p->infosets - 1; i >= 0; i--) {
    const int n = p->actions[i];
    REAL *restrict strategy = p->strategy + p->first[i];
    REAL *restrict regret = p->regret + p->first[i];
    const REAL *own = p->value + p->first[i];
    REAL mean = 0, total = 0;
    for (int a = 0; a < n; a++) mean += strategy[a] * own[a];
    for (int a = 0; a < n; a++) {
      const REAL gain = own[a] - mean, sum = regret[a] + gain;
      regret[a] = sum > 0 ? sum : 0;
      strategy[a] = regret[a] + gain > 0 ? regret[a] + gain : 0;
      total += strategy[a];
    }
    const REAL scale = total > 0 ? 1 / total : 0;
    for (int a = 0; a < n; a++)
      strategy[a] = total > 0 ? strategy[a] * scale : (REAL)1 / n;
    p->value[p->parent[i]] += mean;
  }
}

/* Top down: reach of the next strategy, after the old one has entered the average. */
static void take_in_and_descend(struct side *p, REAL share) {
  REAL *restrict reach = p->reach;
  for (int s = 0; s < p->sequences; s++)
    p->average[s] += share * (reach[s] - p->average[s]);
  for (int i = 0; i < p->infosets; i++) {
    const REAL above = reach[p->parent[i]];
    for (int s = p->first[i]; s < p->first[i] + p->actions[i]; s++)
      reach[s] = above * p->strategy[s];
  }
}

/* Iterations done + 1 to done + iterations; averages weigh t². Scratch: at [W]. */
void pcfr_plus(struct side *sides, REAL *at, int worlds, long done, long iterations) {
  for (long t = done + 1; t <= done + iterations; t++) {
    const double sum = t * (t + 1.0) * (2 * t + 1.0) / 6;
    for (int p = 0; p < 2; p++) {
      leaf_values(&sides[p], &sides[1 - p], at, worlds);
      match_regrets(&sides[p]);
      take_in_and_descend(&sides[p], (REAL)((double)t * t / sum));
    }
  }
}
