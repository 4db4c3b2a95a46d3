#include "agent/control/recording_capture.h"

#include <utility>

#include "agent/log.h"
#include "agent/recording/recording_encode.h"

namespace flamewire::agent {

Result<Environment> RecordingCapture::begin(const RecordingPlan& plan, const Capabilities& capabilities,
                                            const Machine& machine, BatchSink*& sink) {
    Environment environment;
    const std::string path = std::exchange(path_, {});
    if (path.empty()) return environment;
    capture_ = TRY(Capture::begin(path));
    sink_.emplace(*sink, *capture_);
    sink = &*sink_;
    (void)capture_->input(inputs::plan, encode_plan(plan));
    (void)capture_->input(inputs::capabilities, encode_capabilities(capabilities));
    (void)capture_->input(inputs::machine, encode_machine(machine));
    if (plan.follows_name) (void)capture_->input(inputs::follows_name, "yes");
    if (sink->names_kernel_at_end()) (void)capture_->input(inputs::kernel_names_at_end, "yes");
    environment.system = capture_.get();
    environment.kernel = &capture_->kernel();
    log("capturing the inputs of this recording to {}", path);
    return environment;
}

void RecordingCapture::end() {
    if (!capture_) return;
    capture_->flush();
    if (const auto& why = capture_->truncated())
        log("the capture is incomplete: {}", *why);
    else
        log("captured {} bytes", capture_->size_bytes());
    sink_.reset();
    capture_.reset();
}

}  // namespace flamewire::agent
