/* A run without training: a small network with its plan, and step numbers that are a pure function of the step. */
#pragma once

#include "result/record.h"
#include "small_networks.h"

struct fake {
    struct spec spec;
    struct dataset dataset;
    struct job job;
    struct digest *gradient, *parameter, *state, *running; /* filled by fake_step(), whose record points to them */
    size_t *live;
    char results[256];
};

/* The net under segments: 2, on `ref`; results go to the folder. */
void fake_open(struct fake *fake, const struct net *net, const char *results);
void fake_close(struct fake *fake);

/* Another policy, with settings as policy_text_settings() reads them, for the files that are written next. */
void fake_plan(struct fake *fake, const char *policy, const char *settings, bool drop_dead);

/* record_begin() and record_start(), of a run without an earlier file. */
enum status record_create(const struct job *job, const char *variant, struct record **record);

/* Step number step: loss 2 / (step + 1), digests that depend on step and tensor, live bytes as planned. */
struct step_record fake_step(struct fake *fake, uint32_t step);

/* Sets the step's digests to those of the tensors' digests in fake. */
void fake_seal(const struct fake *fake, struct step_record *step);

/* Writes a complete file of steps steps; change, if given, alters a step before it is sealed. path: of the result.
 */
void fake_write(struct fake *fake, const char *variant, uint32_t steps,
                void (*change)(struct fake *, struct step_record *), char path[1024]);

/* The IEEE-754 bit pattern. */
uint32_t bits_of(float x);

/* Creates an empty folder; removes it with its content. */
void folder_make(char folder[256]);
void folder_remove(const char *folder);

/* How many files below folder end in tail. */
int folder_count(const char *folder, const char *tail);
