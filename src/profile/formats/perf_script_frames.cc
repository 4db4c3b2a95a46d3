#include "profile/formats/perf_script_frames.h"

#include <utility>

#include "profile/formats/import_names.h"

namespace flamewire::profile {

bool PerfScriptFrames::add(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return false;
    text.remove_prefix(begin);
    const StringId known = texts_.intern(text);
    if (known < known_.size()) {
        if (known_[known].location != 0 || known_[known].waits) {
            push(known_[known], text);
            return true;
        }
        return false;
    }
    known_.resize(known + 1);
    PerfFrameLine parsed;
    if (!parse_perf_frame(text, parsed)) return false;
    Frame& frame = known_[known];
    frame.waits = parsed.inlined;
    if (!parsed.inlined) {
        const ImportedModule module = module_of_name(parsed.module);
        if (parsed.symbol.empty())
            frame.module = module_of_addresses(builder_, module);
        else if (!module.path.empty())
            frame.module = builder_.module(module.kind, module.path);
        frame.location = location(parsed, frame.module, module.kernel_module);
    }
    push(frame, text);
    return true;
}

wire::Id PerfScriptFrames::location(const PerfFrameLine& frame, wire::Id module, std::string_view kernel_module) {
    const std::uint32_t flags = frame.inlined ? wire::location_flag::inlined : 0;
    // The address is not relative to the file: perf prints no more. It only distinguishes this frame from others.
    if (frame.symbol.empty()) return builder_.location(module, frame.address, flags);
    if (kernel_module.empty()) return builder_.location({.function = frame.symbol, .module = module, .flags = flags});
    name_.assign(frame.symbol).append(" [").append(kernel_module).append("]");
    return builder_.location({.function = name_, .module = module, .flags = flags});
}

void PerfScriptFrames::push(Frame frame, std::string_view text) {
    if (frame.waits) {
        waiting_.emplace_back(frames_.size());
        frame.location = texts_.intern(text);  // until the module is known
    } else {
        for (const std::size_t index : waiting_) {
            PerfFrameLine parsed;
            (void)parse_perf_frame(texts_[frames_[index]], parsed);
            frames_[index] = location(parsed, frame.module, {});
        }
        waiting_.clear();
    }
    frames_.push_back(frame.location);
}

wire::Id PerfScriptFrames::take_stack() {
    if (!waiting_.empty()) push({}, {});
    wire::Id stack = 0;
    for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame)
        if (*frame != 0) stack = builder_.stack(stack, *frame);
    frames_.clear();
    return stack;
}

}  // namespace flamewire::profile
