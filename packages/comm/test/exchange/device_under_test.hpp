/// \file device_under_test.hpp
/// Where exchange_test.cpp runs: on Tpetra's default device, or on the test device.
#pragma once

#include "Komvos_Exchange.hpp"

#ifdef KOMVOS_ON_TEST_DEVICE

#include "Komvos_Exchange_def.hpp"
#include "support/test_device_kokkos.hpp"

namespace KomvosTest {
using DeviceUnderTest = TestDevice::device_type;
}

#else

#include <Tpetra_Details_DefaultTypes.hpp>

namespace KomvosTest {
using DeviceUnderTest = Tpetra::Details::DefaultTypes::node_type::device_type;
}

#endif
