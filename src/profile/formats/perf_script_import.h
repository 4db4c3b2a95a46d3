// Imports the text of `perf script`, with the field orders of its versions and of -F: a line with thread, CPU, time,
// period and event, then one line per frame, innermost first. Also imports PerfLens' chunks, which have the output of
// `perf stat` after it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "profile/formats/import.h"
#include "profile/formats/perf_script_layout.h"

namespace flamewire::profile {

// Takes the text in arbitrary pieces, from a file or from an agent.
class PerfScriptText {
public:
    // Called at the first sample. `about` has what the text up to then states about the machine, and the sample's time
    // as start.
    using Begin = std::function<RecordingBuilder&(wire::Recording about)>;
    // `layout`: the fields of its samples; nothing if they have the default fields.
    explicit PerfScriptText(Begin begin, std::optional<PerfLayout> layout = {});
    ~PerfScriptText();

    Result<bool> feed(std::string_view text);
    // The text so far is complete, and more can follow: sends everything collected to the builder. Long streams begin a
    // new epoch here.
    Result<bool> end_chunk();
    // invalid: the text had no samples.
    Result<bool> finish();
    [[nodiscard]] bool begun() const;
    [[nodiscard]] std::uint64_t newest_ns() const;  // time of the newest sample; 0: none

private:
    class Reader;
    std::unique_ptr<Reader> reader_;
};

bool recognises_perf_script(std::string_view beginning);
Result<bool> import_perf_script(ImportJob& job);

}  // namespace flamewire::profile
