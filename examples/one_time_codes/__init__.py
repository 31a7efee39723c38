"""One-time codes by SMS or voice call, with everything a sender of paid messages has to limit."""
