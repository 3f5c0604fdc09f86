"""Which turns are judged: sampling, rules, suspicion, throttle and budget."""
