// The capture of --capture: the inputs of the first recording, while it runs.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "agent/capture/capturing_sink.h"
#include "agent/recording/recorder.h"

namespace flamewire::agent {

class RecordingCapture {
public:
    // Empty: nothing is captured.
    explicit RecordingCapture(std::string path) : path_(std::move(path)) {}

    // Call it before a recording starts. The first time, it replaces `sink` and returns what captures the inputs.
    Result<Environment> begin(const RecordingPlan& plan, const Capabilities& capabilities, const Machine& machine,
                              BatchSink*& sink);
    // Call it after the sampler thread has ended.
    void end();

private:
    std::string path_;
    std::unique_ptr<Capture> capture_;
    std::optional<CapturingSink> sink_;
};

}  // namespace flamewire::agent
