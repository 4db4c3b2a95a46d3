// For tests that read this process's own memory like that of another process.
#pragma once

#include <catch2/catch.hpp>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

// qemu's user mode has no process_vm_readv, and its /proc/PID/mem contains the emulator's addresses.
#define NEEDS_OWN_ADDRESSES()                                                                                \
    if (const iovec none{}; ::process_vm_readv(::getpid(), &none, 0, &none, 0, 0) != 0 && errno == ENOSYS) { \
        WARN("NOT tested: no process_vm_readv, as under qemu-user");                                         \
        return;                                                                                              \
    }
