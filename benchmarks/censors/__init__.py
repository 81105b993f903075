"""Does censoring help? Each censor against the uncensored network, its placebo and competitors."""
