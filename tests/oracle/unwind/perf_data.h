// A perf.data file as records in time order. Pure: bytes in, records out. Views point into the bytes (or into the
// unpacked bytes). Source: linux/perf_event.h (records) and the kernel's perf.data-file-format.txt (the file around
// them). Reads files as `perf record -o` writes them, in this machine's byte order, but not pipe streams.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace flamewire::perf_data {

// The attributes of one event that determine how to read its records.
struct Attribute {
    std::uint64_t sample_type = 0;  // PERF_SAMPLE_*
    std::uint64_t read_format = 0;
    std::uint64_t branch_sample_type = 0;
    std::uint64_t sample_regs_user = 0;
    std::uint32_t sample_stack_user = 0;
    bool sample_id_all = false;
    bool exclude_callchain_user = false;
    std::vector<std::uint64_t> ids;
};

struct Branch {
    std::uint64_t from = 0, to = 0;
};

struct Sample {
    std::size_t attribute = 0;  // index into Recording::attributes
    std::uint64_t ip = 0;
    std::uint32_t pid = 0, tid = 0;
    std::uint64_t time_ns = 0;
    std::uint64_t period = 0;
    bool user_mode = false;                // where the CPU was interrupted
    std::vector<std::uint64_t> callchain;  // with PERF_CONTEXT_* markers, innermost first
    std::vector<Branch> branches;          // newest first
    std::uint64_t registers_abi = 0;       // enum perf_sample_regs_abi; 0: none
    std::vector<std::uint64_t> registers;  // those of sample_regs_user, lowest bit first
    Bytes stack;                           // only the bytes that were actually copied
};

struct Mapping {
    std::uint32_t pid = 0, tid = 0;
    std::uint64_t time_ns = 0;
    std::uint64_t start = 0, length = 0, page_offset = 0;
    bool executable = true;
    bool kernel = false;
    Bytes build_id;  // empty: unknown
    std::string_view path;
};

struct Comm {
    std::uint32_t pid = 0, tid = 0;
    std::uint64_t time_ns = 0;
    bool exec = false;
    std::string_view comm;
};

// FORK and EXIT. A new thread has pid == parent_pid.
struct Task {
    bool exit = false;
    std::uint32_t pid = 0, parent_pid = 0, tid = 0, parent_tid = 0;
    std::uint64_t time_ns = 0;
};

using Record = std::variant<Sample, Mapping, Comm, Task>;

struct Recording {
    std::string machine;  // as uname -m; empty: unknown
    std::vector<Attribute> attributes;
    std::vector<Record> records;       // by time; for equal times, in the order of the file
    std::uint64_t skipped = 0;         // records of other types
    std::deque<std::string> unpacked;  // the content of compressed records
};

// invalid: not a perf.data file, or damaged. unsupported: pipe mode or another byte order. `file` must outlive the result.
Result<Recording> read_recording(Bytes file);

}  // namespace flamewire::perf_data
