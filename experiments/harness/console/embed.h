/* Files within the program. */
#ifndef REMATCH_CONSOLE_EMBED_H
#define REMATCH_CONSOLE_EMBED_H

/* Declares name, the text of a file of the source tree or of the system as it was when the program was built. */
#define EMBED(name, path)                                                                                              \
    __asm__(".section .rodata\n" #name ":\n.incbin \"" path "\"\n.byte 0\n.previous\n");                               \
    extern const char name[]

#endif
