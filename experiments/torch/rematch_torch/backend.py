def plans_of(m): return []
