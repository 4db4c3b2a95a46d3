// Reads the text of `perf script`, in the orders of fields that its versions and -F give: a line that says who, where,
// when, how much and what, then a line a frame, innermost first. Also PerfLens' chunks, which have the text of
// `perf stat` behind it.
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

// The text in any pieces, of a file or as an agent sends it.
class PerfScriptText {
public:
    // Called at the first sample, with what the text says of the machine until then and the sample's time as start.
    using Begin = std::function<RecordingBuilder&(wire::Recording about)>;
    // `layout`: of its samples; nothing if they have the default fields.
    explicit PerfScriptText(Begin begin, std::optional<PerfLayout> layout = {});
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
