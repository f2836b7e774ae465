"""Shows that decodelab's verdicts can be trusted: false alarms, power, rival rules, overhead, each against its target."""
