// The frames of the text of `perf script`. Equal lines are one frame.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "profile/formats/perf_script_lines.h"
#include "profile/formats/recording_builder.h"
#include "profile/store/string_table.h"

namespace flamewire::profile {

// Lives as long as the builder's epoch.
class PerfScriptFrames {
public:
    explicit PerfScriptFrames(RecordingBuilder& builder) : builder_(builder) {}

    // Adds a frame to the sample, innermost first. Returns false if the line is not a frame.
    bool add(std::string_view text);
    [[nodiscard]] bool empty() const { return frames_.empty(); }
    // The stack of the sample. The next frame starts another one.
    wire::Id take_stack();

private:
    struct Frame {
        wire::Id location = 0, module = 0;
        bool waits = false;  // inlined: its module is that of the frame that it is inlined into
    };

    wire::Id location(const PerfFrameLine& frame, wire::Id module, std::string_view kernel_module);
    void push(Frame frame, std::string_view text);

    RecordingBuilder& builder_;
    std::vector<wire::Id> frames_;  // of the sample, innermost first
    std::vector<std::size_t> waiting_;
    StringTable texts_;
    std::vector<Frame> known_{1};  // by text id
    std::string name_;
};

}  // namespace flamewire::profile
