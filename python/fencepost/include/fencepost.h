// SPDX-License-Identifier: Apache-2.0
//
// Says what an operation of a durable program is, for `fencepost crash`: docs/crash-operations.md.
//
//   FP_BEGIN("insert k=7");   an operation of this thread begins
//   FP_END();                 the thread's operation that began last has ended
//   FP_ACK("inserted 7");     from here on someone has been told of it: it must not be lost
//
// Each is one instruction that does nothing, so a program that has them runs as before, also under
// other tools. Only a recorder looks at it: it then copies up to 200 bytes of the text. x86-64
// only; elsewhere they are nothing at all.
#ifndef FENCEPOST_H
#define FENCEPOST_H

#if defined(__x86_64__)
// An 8-byte NOP whose 32-bit displacement is 0x504D0000 plus the code, with the text in RDI.
#define FENCEPOST_MARK(code, text)                                                                 \
  __asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00\n\t.long 0x504d0000 + " #code                     \
                   :                                                                               \
                   : "D"((const char *)(text))                                                     \
                   : "memory")
#else
#define FENCEPOST_MARK(code, text) ((void)(text))
#endif

#define FP_BEGIN(text) FENCEPOST_MARK(1, text)
#define FP_END() FENCEPOST_MARK(2, 0)
#define FP_ACK(text) FENCEPOST_MARK(3, text)

#endif
