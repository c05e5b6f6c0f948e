/* SPDX-License-Identifier: Apache-2.0 */
#ifndef THREAD_OF_LAUNCHER_H
#define THREAD_OF_LAUNCHER_H

/* Runs beside the launcher's own thread until the launcher ends, and gets no signals. */
void launcher_thread_begin(void *(*run)(void *), void *argument);

#endif
