#ifndef LIMITED_LOGIN_TEST_PROCESS_H
#define LIMITED_LOGIN_TEST_PROCESS_H

/* Faults of system calls. The tests' process replaces some functions of the C library (see FaultPlan.c); each calls the original
 * one unless a plan makes it fail. A plan belongs to descriptors: to those that a thread opens while it uses the plan, and to those
 * accepted from them. It is never freed, since it outlives them. */
enum fault_call {
    FAULT_ACCEPT, FAULT_RECEIVE, FAULT_SEND, FAULT_SHUTDOWN, FAULT_CREATE_POLL, FAULT_CONTROL, FAULT_WAIT,
    FAULT_CREATE_EVENT_DESCRIPTOR, FAULT_CALL_COUNT,
};

struct fault_plan;

/* Calls number `first` to `end - 1` (from 1) of this kind fail. A send takes at most `most` bytes. */
struct fault_plan *fault_plan_make(enum fault_call call, long first, long end, int error_number, long most);
/* The descriptors that this thread opens from now on belong to the plan; NULL: to none. */
void fault_plan_use(struct fault_plan *plan);
/* No call fails from now on. */
void fault_plan_end(struct fault_plan *plan);
long fault_plan_count(struct fault_plan *plan, enum fault_call call);
/* The number of the plan's descriptors that are open. */
long fault_plan_open_descriptors(struct fault_plan *plan);

/* Simulated time. The thread that begins a simulation, and those that it starts, read the simulation's clocks, draw Swift's random
 * numbers from its seed, and reach its servers. One of them runs at a time: a started thread runs until it waits in poll(). */
struct simulated_time;

/* A thread connects to a port. The descriptor is the server's end. False refuses. */
typedef _Bool (*simulated_listener)(void *context, unsigned short port, int descriptor);

struct simulated_time *simulated_time_begin(unsigned long long seed, simulated_listener listener, void *context);
/* All started threads have ended. */
void simulated_time_end(struct simulated_time *world);
/* Nanoseconds of the monotonic clock; any thread may ask. */
unsigned long long simulated_time_now(struct simulated_time *world);
void simulated_time_set(struct simulated_time *world, unsigned long long now);
/* The owner's wall clock less the monotonic clock, in nanoseconds. */
void simulated_time_set_lead(struct simulated_time *world, long long lead);
/* Starts a thread and returns its number. */
int simulated_time_start(struct simulated_time *world, long long lead, void (*body)(void *), void *context);
/* Lets the threads run that need not wait, and returns the first moment until which one waits. */
unsigned long long simulated_time_settle(struct simulated_time *world);
/* Ends a thread: it waits for nothing, and all its deadlines have passed. Its code must return then. */
void simulated_time_kill(struct simulated_time *world, int thread);

/* While it is true, OpenSSL prepares no key on this thread. */
void openssl_fails(_Bool fails);

#endif
