"""Whether dpfast works on this machine, and how fast (`dpfast doctor`), and its compiled code (`dpfast warmup`)."""
