// Folded stacks, one per line: "outermost;…;innermost count". flamegraph.pl's stackcollapse scripts write this format
// and most tools read it. FlameGraph's suffixes ("_[k]" kernel, "_[j]" JIT, "_[i]" inlined) become frame kinds.
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

// The code of the notice for a file with two columns. Its session has one thread per column, with these tids.
inline constexpr std::string_view two_sides_note = "import-two-sides";
inline constexpr std::uint32_t two_sides_before = 1, two_sides_after = 2;

class CollapsedImport {
public:
    // All rows have the event `samples` and the time `bucket`. In a file with two columns the rows belong to one thread
    // per column. Other rows belong to an unnamed thread with tid 0.
    CollapsedImport(RecordingBuilder& builder, std::uint64_t bucket, const FoldedShape& shape);

    // Takes the next piece of the file. Pieces can end anywhere.
    Result<bool> feed(std::string_view text);
    // The last line can lack its line break. Adds a note if some lines are not folded stacks. invalid: none of the
    // lines is one.
    Result<bool> finish();

    // Returns whether the beginning of a file looks like folded stacks.
    static bool recognises(std::string_view beginning);

    // Maximum number of strings, locations and stacks of an epoch: they take some tens of MiB.
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
    // The stack of the line before: neighboring lines mostly share their outer frames.
    std::string last_;
    struct Step {
        std::size_t end = 0;  // where the frame ends in `last_`
        wire::Id stack = 0;
    };
    std::vector<Step> steps_;
    std::uint64_t line_number_ = 0, lines_ = 0, bad_lines_ = 0, first_bad_ = 0;  // `lines_`: neither blank nor comments
};

Result<bool> import_collapsed(ImportJob& job);

}  // namespace flamewire::profile
