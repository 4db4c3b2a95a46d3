// The short reference of options. The full one is docs/agent.md.
#include "agent/options.h"

namespace flamewire::agent {

std::string help_text() {
    return R"(flamewire-agent: samples processes on this machine and streams what they do

Usage:
  flamewire-agent --server HOST [TARGET] [OPTIONS]     connect to the server, and reconnect forever
  flamewire-agent --listen [TARGET] [OPTIONS]          wait for the server to connect
  flamewire-agent --output FILE TARGET [OPTIONS]       write a session file (- is standard output)

Where samples go (one of)
  --server HOST       host of flamewire-server; when it does not answer, the agent tries again after 1 to 30 s
  --listen            accept one server at a time on --bind and --port
  --output FILE       write one session file and end; - refuses a terminal and -- CMD
  --port PORT         TCP port of --server and --listen (9999)
  --bind ADDR         address of --listen (0.0.0.0: all networks)
  --pair CODE         pairing code of this agent: with --server as the server printed it; the connection is encrypted
                      by it. --listen makes and prints one where none is given
  --pair-file FILE    the same from a file; ps shows neither this nor the variable FLAMEWIRE_PAIR. --listen makes it
  --insecure          no encryption and no code: anyone on the network can read and change everything, and anyone can pose as
                      the server, also on this machine
  --force             let --output replace an existing file

Target (at most one; --server and --listen wait for commands without it)
  --pid PID[,PID...]  processes with all their threads, and children born later
  --name COMM         processes of this name, also those that start later; waits until one appears; may be repeated
  -a, --all           the whole system: every process, kernel threads too; except idle time and the agent itself
  --cpus LIST         what runs on these CPUs (0-3,6); with --all or alone, or with --cgroup and --container
  --cgroup PATH       what runs in a control group, by its folder or its path below the mount; may be repeated
  --container ID      what runs in a container, by its id, the id's beginning, or a name that its cgroup has
  -- CMD ARGS...      launch CMD and sample it from its exec on; the agent ends with it and returns its exit code
  --delay MS          start sampling CMD this long after its exec

What a server may choose (all processes that this user may profile; each option given must fit)
  --allow-pid PID[,PID...]       these processes
  --allow-user USER[,USER...]    processes of these users, by name or number
  --allow-command NAME[,NAME...] executables of these names; * and ? stand for anything
  --allow-kprobes                also probes in the kernel
  --allow-breakpoints            breakpoints (mem:) in processes; without this option none

Sampling
  --frequency HZ      samples per second and thread (99; faults and hits of probes: each one, unless this is given)
  --count N           a sample every N events, instead of a frequency
  --events LIST       perf's names, comma separated: cycles, cpu-clock:u, r01c2, cpu_core/cycles/, each with
                      optional @HZ (cycles, or cpu-clock where no hardware counter works); none: only count.
                      Tracepoints: sys:name, sys:name/FILTER/; * in the name stands for any text
                      Probes: uprobe:FUNCTION@"FILE", usdt:PROVIDER:NAME@"FILE", kprobe:FUNCTION, and of returns
                      uretprobe:FUNCTION@"FILE", kretprobe:FUNCTION, each with /FILTER/FIELD=VALUE/
                      Breakpoints: mem:VARIABLE:w, mem:VARIABLE@"FILE"/4:rw, mem:0xADDRESS, mem:FUNCTION:x
  --trace LIST        also keeps each sample of these events with its time, values and stack; before an event,
                      trigger: keeps nothing until its first sample
  --trace-first N     keeps only the first N of them
  --filter EXPR       the kernel's filter for all tracepoints and probes of LIST that have none of their own
  --max-slowdown PCT  probes that would slow down a running target more than this are thinned or refused (10)
  --stat LIST         what is counted meanwhile: events as above, default or none (default). With --events none a
                      table like perf stat's is printed at the end; --output - prints only that
                      sched, with --output -: prints how threads were scheduled, in a terminal every second
  --unwind MODE       how user stacks are found (auto):
                      auto    by what each process needs, measured: fp, hybrid or dwarf;
                              for whole CPUs: dwarf, with fewer bytes if that copies too much
                      fp      frame pointers, as the kernel walks them
                      dwarf   unwind tables, from registers and a copy of the stack
                      lbr     the CPU's branch records, where it has them
                      hybrid  tables for the innermost frames, frame pointers for the rest
  --stack-size BYTES  copied with a sample in dwarf mode, 1024 to 65528, with K (16K)
  --max-depth N       frames of a stack, 16 to 4096 (1024)
  --unwind-memory MIB for unwind tables and rules, 4 to 1024 (32)
  --no-kernel         user space only
  --interval MS       between batches (250; 1000 with --output)

Length (--output; --server and --listen accept and report it, and sample until stopped)
  --duration S        of a round (8; -- CMD without it: until CMD ends)
  --rounds N          rounds of --duration (1)

Other
  --metrics SECONDS   between reports of the machine's health, 1 to 60, or off (2)
  --spool BYTES       kept in memory while the server is away, with K, M or G (8M)
  --module-cap BYTES  of a program's or library's symbols that a server lacks and asks for; 0 sends none (64M)
  --no-module-upload  the same as --module-cap 0
  --ring-pages N      pages of a sample ring, a power of two; for tests and unusual machines (by frequency)
  --capture FILE      also write all inputs of the recording to FILE, for replay in a bug report. FILE contains command
                      lines, paths and memory of the target
  --no-seccomp        do not filter system calls, in case the filter causes a problem
  --verbose           log more, and account for every sample at the end
  -h, --help          this text
  -V, --version       version, architecture, features
  --describe LIST     print what these events are, with the fields of tracepoints and probes, and end; probes in the
                      files of --pid, or in files given by their paths
  --doctor            what can be profiled on this machine, what is limited, and the remedy; 1 when something is

Exit codes: 0 success; 1 failure (a message says why); 2 wrong usage; with -- CMD its own code, 128 + signal
when a signal ended it, 126 or 127 when it cannot be run.
)";
}

}  // namespace flamewire::agent
