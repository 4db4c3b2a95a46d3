// Reads the text of `perf script`, in the orders of fields that its versions and -F give: a line that says who, where,
// when, how much and what, then a line a frame, innermost first. Also PerfLens' chunks, which have the text of
// `perf stat` behind it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "profile/formats/import.h"

namespace flamewire::profile {

// The first line of a sample. Views into it.
struct PerfSampleLine {
    std::string_view comm, event;
    std::uint32_t pid = 0, tid = 0, cpu = 0;
    std::uint64_t time_ns = 0, period = 0;
    bool has_time = false, has_period = false;
    std::string_view rest;  // behind the event: a frame, or what a tracepoint says
};
// False when it is none.
bool parse_perf_sample(std::string_view line, PerfSampleLine& into);

// One frame. Views into the line.
struct PerfFrameLine {
    std::uint64_t address = 0;
    std::string_view symbol, module;  // symbol without its offset; empty: not known
    bool inlined = false;
};
bool parse_perf_frame(std::string_view line, PerfFrameLine& into);

// The text in any pieces, of a file or as an agent sends it.
class PerfScriptText {
public:
    // Called at the first sample, with what the text says of the machine until then and the sample's time as start.
    using Begin = std::function<RecordingBuilder&(wire::Recording about)>;
    explicit PerfScriptText(Begin begin);
    ~PerfScriptText();

    Result<bool> feed(std::string_view text);
    // The text so far is whole, and more may come: what is known of it is given away. Long streams begin a new epoch here.
    Result<bool> end_chunk();
    // invalid: it had no sample.
    Result<bool> finish();
    [[nodiscard]] bool begun() const;
    [[nodiscard]] std::uint64_t newest_ns() const;  // of all samples; 0: none

private:
    class Reader;
    std::unique_ptr<Reader> reader_;
};

bool recognises_perf_script(std::string_view beginning);
Result<bool> import_perf_script(ImportJob& job);

}  // namespace flamewire::profile
