"""What is known of single runs, one kind of formula a file; `dpfast.accounting.facts` says which is for which event."""
