/* The transport of pooled memory on this machine: how a program reports what it uses, and names its
 * channels.
 *
 * A thread has at most one channel. It belongs to one of the configured channels (`[[channel]]` of
 * channels.toml), whose weight and devices it has. A program that is started by `fencepost channel
 * run` has channels for all of its threads before it calls anything here; it may then do without
 * all of these calls, or only report bytes. One that is started by itself calls mchannel_init, and
 * mchannel_open in its first thread; threads that it makes from then on have channels.
 *
 * All functions may be called by any thread, but not by a signal handler. Those that return an int
 * return 0, or the negative number of an error, as <errno.h> has it.
 */
#ifndef MCHANNEL_H
#define MCHANNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Joins a segment, in which devices are shared. `path` is that of a segment, or that of a
 * configuration (channels.toml) if it ends with ".toml". NULL: the segment that
 * FENCEPOST_CHANNEL_SEGMENT names, as `fencepost channel run` and `serve` have it; else the
 * configuration that FENCEPOST_CHANNEL_CONFIG names; else the devices that sysfs shows: the nodes
 * of CXL memory, with the bandwidth that the firmware says.
 *
 * Without a segment, this starts `fencepost channel serve`, which finds the devices and makes the
 * segment, or finds that of the programs of this user with the same configuration, and waits for
 * it: some tenths of a second, at most 30 s. The server is no child of the program, and has its
 * standard error and none of its other descriptors. It ends after the last program that has joined.
 * The program has one more descriptor from then on, which its forked children have, too: it says
 * that they have joined. The command is that of FENCEPOST_COMMAND, a path; else that of the
 * installation that has this library; else the one in PATH.
 *
 * Once joined, further calls change nothing. Call it before there are other threads.
 *   -EACCES     the segment cannot be opened or mapped
 *   -EPROTO     it is no segment, is cut short, is of another version of Fencepost, or has no such
 *               host
 *   -EINVAL     the server has ended without a segment, and has said why on standard error: the
 *               configuration is wrong, or there is no device or nothing that counts bytes
 *   -ENOENT     the command is not found, or cannot be executed
 *   -ETIMEDOUT  the server has not answered within 30 s
 *   -EAGAIN     the kernel has no process, memory or descriptor for the server
 *   -EPERM      the program has rights that its user does not have (set-uid, capabilities), with
 *               which it starts nothing
 */
int mchannel_init(const char *path);

/* Gives the calling thread a channel: one of the configured channel `name`; NULL: of the first that
 * matches the program and the thread. With a name, the channel that the thread had is closed first.
 *   -ENODEV  mchannel_init has not joined a segment
 *   -ENOENT  no configured channel has this name, or none matches
 *   -EBUSY   `name` is NULL and the thread has a channel
 *   -EAGAIN  the segment has no row left: 1,024 threads of a host can be paced
 *   -ENOMEM  the kernel has no memory
 *   -ENODATA the bytes that the thread moves cannot be counted: a program that reports them calls
 *            mchannel_account first
 */
int mchannel_open(const char *name);

/* Ends the calling thread's channel; the thread runs on unpaced. The end of the thread does so too.
 *   -ENODEV  it has none
 */
int mchannel_close(void);

/* Ends the calling thread's scheduling window if it is over, and pauses the thread if it used more
 * than its share. The trigger's signal does so by itself; a program may call this where a pause
 * hurts least, before it takes a lock. Returns for how many nanoseconds the thread was paused, or
 * -ENODEV without a channel.
 */
int64_t mchannel_sched(void);

/* The calling thread has moved so many bytes from or to the devices of its channel since the last
 * call. Once any thread of a process has called it, that process reports for itself, and nothing is
 * charged for any of its threads. It costs about as much as an addition. -ENODEV  the thread has no
 * channel
 */
int mchannel_account(uint64_t bytes);

#ifdef __cplusplus
}
#endif

#endif
