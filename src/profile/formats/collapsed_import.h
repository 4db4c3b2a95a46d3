// Folded stacks, one line each, "outermost;…;innermost count": what flamegraph.pl's stackcollapse scripts write and most
// tools read. FlameGraph's marks at the end of a name ("_[k]" kernel, "_[j]" JIT, "_[i]" inlined) become kinds.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "profile/formats/collapsed_lines.h"
#include "profile/formats/import.h"
#include "profile/formats/line_feed.h"
#include "profile/formats/recording_builder.h"

namespace flamewire::profile {

// The notice of a file with two columns. Its session has a thread for each of them, with these ids.
inline constexpr std::string_view two_sides_note = "import-two-sides";
inline constexpr std::uint32_t two_sides_before = 1, two_sides_after = 2;

class CollapsedImport {
public:
    // All rows have the event `samples` and the time `bucket`. Rows of a file with two columns belong to a thread per column,
    // other rows to none.
    CollapsedImport(RecordingBuilder& builder, std::uint64_t bucket, const FoldedShape& shape);

    // Any pieces of the file, in order.
    Result<bool> feed(std::string_view text);
    // The last line may lack its line break. Notes lines that are none of the format; invalid when all are.
    Result<bool> finish();

    // Whether the beginning of a file looks like it.
    static bool recognises(std::string_view beginning);

    // Strings, locations and stacks of an epoch, in some tens of MiB.
    static constexpr std::size_t max_entries = std::size_t{1} << 19;

private:
    void begin_tables();
    Result<bool> line(std::string_view text);
    Result<bool> add(wire::Row row, const FoldedNumber& number);
    wire::Id location_of(std::string_view frame);

    RecordingBuilder& builder_;
    FoldedShape shape_;
    wire::Id before_ = 0;
    wire::Row row_;
    wire::Id jit_ = 0;
    LineFeed lines_in_;
    // The line before: neighbours mostly share their outer frames.
    std::string last_;
    struct Step {
        std::size_t end = 0;  // of the frame in `last_`
        wire::Id stack = 0;
    };
    std::vector<Step> steps_;
    std::uint64_t line_number_ = 0, lines_ = 0, bad_lines_ = 0, first_bad_ = 0;  // `lines_`: not blank
};

Result<bool> import_collapsed(ImportJob& job);

}  // namespace flamewire::profile
