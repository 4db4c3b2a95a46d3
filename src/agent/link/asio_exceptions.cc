// In builds without exceptions, Asio requires the program to define throw_exception(). It terminates here, as for an
// uncaught exception. Asio throws if memory or a file descriptor is unavailable when it starts.
#include <asio/detail/throw_exception.hpp>
#include <asio/error_code.hpp>
#include <asio/execution/bad_executor.hpp>
#include <asio/execution_context.hpp>
#include <asio/ip/bad_address_cast.hpp>
#include <asio/system_error.hpp>

#include <exception>

#ifdef ASIO_NO_EXCEPTIONS
namespace asio::detail {

template <typename Exception>
void throw_exception(const Exception& /*unused*/) {
    std::terminate();
}

template void throw_exception(const asio::system_error&);
template void throw_exception(const asio::execution::bad_executor&);
template void throw_exception(const asio::ip::bad_address_cast&);
template void throw_exception(const asio::service_already_exists&);
template void throw_exception(const asio::invalid_service_owner&);
template void throw_exception(const std::bad_alloc&);

}  // namespace asio::detail
#endif
