/* What an op of a node reads and writes, as symbols in the machine's memory. */
#pragma once

#include "check/symbolic_memory.h"

enum symbol { VALUE = 1, SAVED, ONCE, INPUT_GRADIENT, SUM, DERIVED, PARAMETER_GRADIENT, TRACED };

/* A hash of (symbol, a, b), different for different arguments except by chance. */
uint64_t symbol_name(enum symbol symbol, uint64_t a, uint64_t b);

/* The place of a node and slice in arrays by both. */
static inline int machine_slot(const struct machine *m, int node, int slice) { return node * m->slices + slice; }

/* The current op reads the newest incarnation of a value, or of a node's saved tensors, in buffer id. */
enum status operand_value(struct machine *m, int id, int value, const char *what);
enum status operand_saved(struct machine *m, int id, int node, size_t bytes);

/* The buffer of a tensor about to be written has its category and node, if it is the first one there. */
enum status operand_called(const struct machine *m, int id, enum category category, int node);

enum status operand_scratch(struct machine *m, size_t bytes);

/* What a node writes once, at its first forward: a random one its stash or mask, another its statistics. */
enum status operand_once(struct machine *m, const struct plan_data_node *node, bool wanted);
