/* Which run this is: two runs of one id must give the same bits. */
#ifndef REMATCH_IDENTITY_H
#define REMATCH_IDENTITY_H

#include "run.h"

enum { RUN_ID_TEXT = 17 };

/* 16 hexadecimal digits: the head of the XXH3-128 of the resolved spec (without what cannot change a bit: name, title,
 * expect, sweep, results, costs, plan), this program's own bytes, the data's digest, the libraries' versions, ISA,
 * threads, the plan's hash, the digests of measured costs and of wisdom, the SHA-256 of the file of initial values,
 * which is read for it, and the device. */
enum status run_identity(const struct job *job, char id[RUN_ID_TEXT]);

#endif
